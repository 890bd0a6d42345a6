create table customer (id int primary key, name string, region string);
create table sale (id int primary key, customer int not null references customer, price decimal(9,2), day date);
use analytics;
drop view v;
create view v as select id from customer;
