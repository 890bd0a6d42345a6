-- One row for each customer, with or without orders.
with history as (
    select customer_id, count(*) as orders, min(ordered_on) as first_order, max(ordered_on) as last_order
    from {{ ref('stg_orders') }}
    group by customer_id
)
select c.customer_id, c.customer_name, c.city, coalesce(h.orders, 0) as orders, h.first_order, h.last_order,
    case when h.orders > 1 then 'returning' when h.orders = 1 then 'new' else 'none' end as kind
from {{ ref('stg_customers') }} c
left join history h on c.customer_id = h.customer_id
