create table shop (code char(2), city string, primary key (code));
create table visit (id uuid primary key, mood public.mood, said jsonb, shop char(2) references shop);
create view moods as select city, count(*) as n from shop group by city;
