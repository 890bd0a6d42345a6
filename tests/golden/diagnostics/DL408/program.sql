create table a (x int primary key, name string, price double);
create view v as select x, "name" as n, cast(price as decimal) as p from a where name rlike '^\d+';
