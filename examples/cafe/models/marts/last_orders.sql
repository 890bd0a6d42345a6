select customer_id, order_id, ordered_at, status
from (
    select *, row_number() over (partition by customer_id order by ordered_at desc, order_id desc) as place
    from {{ ref('stg_orders') }}
) as placed
where place = 1
