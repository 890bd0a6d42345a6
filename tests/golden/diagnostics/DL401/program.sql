create view v as select name from from customer;
create view w as select name from customer where (id > 3;
