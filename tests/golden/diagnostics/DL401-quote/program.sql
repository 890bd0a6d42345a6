create view v as select 'a from customer;
