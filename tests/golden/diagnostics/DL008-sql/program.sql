create table t (a int primary key);
create view v as select a from t where a < 999999999999999999999999999999999999999;
