select o.ordered_on, p.kind, count(*) as lines, sum(i.quantity) as pieces, sum(i.quantity * p.price) as revenue
from {{ ref('stg_items') }} i
join {{ ref('stg_orders') }} o on i.order_id = o.order_id
join {{ ref('stg_products') }} p on i.sku = p.sku
group by o.ordered_on, p.kind
