create table customer (id int primary key, name string, region string);
create table sale (id int primary key, customer int not null references customer, price decimal(9,2), day date);
create view v as select c.name, row_number() over (order by c.id) as n, rand() as r
from customer c left join sale s on s.customer = c.id
where c.region in (select region from customer) and soundex(c.name) = 'x' and s.day > current_date
limit 10;
create view w as select id from (select id, lag(id) over (order by id) from sale) x;
create view u as select count(*) as n from (select id from customer union all select id from sale) x group by id;
create view t as select name, n from v;
create view s as select name from customer intersect all select region from customer;
