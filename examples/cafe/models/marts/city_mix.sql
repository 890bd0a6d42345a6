select c.city, o.status, count(*) as orders
from {{ ref('orders') }} o
join {{ ref('customers') }} c on o.customer_id = c.customer_id
group by c.city, o.status
