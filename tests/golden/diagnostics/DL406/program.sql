create table customer (id int primary key, name string, region string);
create table sale (id int primary key, customer int not null references customer, price decimal(9,2), day date);
create view v (a, b) as select id from customer;
create view w as select id from customer union all select id, price from sale;
create view u as select x from (select id, name from customer) as c(x);
