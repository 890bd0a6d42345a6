create table customer (id int primary key, name string, region string);
create table sale (id int primary key, customer int not null references customer, price decimal(9,2), day date);
create view v as select id, name from customer, sale;
create view w as select 1 as one from sale, sale;
