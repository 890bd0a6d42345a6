select ordered_on, count(distinct customer_id) as customers, count(*) as orders
from {{ ref('stg_orders') }}
group by ordered_on
