select product_name, sum(amount) as revenue
from {{ ref('order_items') }}
group by product_name
having sum(amount) > 100
