select i.item_id, i.order_id, o.customer_id, o.ordered_on, p.product_name, p.kind, i.quantity, i.quantity * p.price as amount
from {{ ref('stg_items') }} i
join {{ ref('stg_orders') }} o on i.order_id = o.order_id
join {{ ref('stg_products') }} p on i.sku = p.sku
