create table customer (id int primary key, name string, region string);
create table sale (id int primary key, customer int not null references customer, price decimal(9,2), day date);
create view v as select region, name, count(*) as n from customer group by region;
create view w as select region from customer where count(*) > 1;
create view u as select region from customer group by 3;
create view t as select count(*) as n from customer having name is null;
