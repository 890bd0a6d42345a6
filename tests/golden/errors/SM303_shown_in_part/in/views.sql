CREATE TABLE patient (id BIGINT PRIMARY KEY, region STRING NOT NULL);
CREATE TABLE visit (id BIGINT PRIMARY KEY, patient BIGINT NOT NULL REFERENCES patient, fee BIGINT NOT NULL);
CREATE VIEW visits AS SELECT id, patient FROM visit;
CREATE VIEW fees AS SELECT patient, COUNT(*) AS visits, SUM(fee) AS fees FROM visit GROUP BY patient;
