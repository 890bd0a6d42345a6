select id as order_id, customer as customer_id, ordered_at, cast(ordered_at as date) as ordered_on, status
from {{ source('raw', 'orders') }}
where status <> 'cancelled'
