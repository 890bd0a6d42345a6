create view v as select id from w;
create view w as select * from u;
create view u as select id from v;
