create table customer (id int primary key, name string, region string);
create table sale (id int primary key, customer int not null references customer, price decimal(9,2), day date);
create view v as select c.nam, prize, c.foo from customer c join sale s on s.custmer = c.id;
create view w as select name from customer join sale using (name);
