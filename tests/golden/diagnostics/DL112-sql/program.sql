create table customer (id int primary key, name string, region string);
create table sale (id int primary key, customer int not null references customer, price decimal(9,2), day date);
create view v as select id from sale where day > 3 and price = '5' and customer = day and day > '2026-01-31';
create view w as select sum(name) as n from customer;
