-- One row for each order, with what it comes to.
with items as (
    select i.order_id, i.quantity, i.quantity * p.price as amount, p.is_drink
    from {{ ref('stg_items') }} i
    join {{ ref('stg_products') }} p on i.sku = p.sku
),
totals as (
    select order_id, count(*) as lines, sum(quantity) as pieces, sum(amount) as total,
        sum(case when is_drink then amount else 0 end) as drinks
    from items
    group by order_id
)
select o.order_id, o.customer_id, o.ordered_on, o.status, t.lines, t.pieces, t.total, t.drinks
from {{ ref('stg_orders') }} o
left join totals t on o.order_id = t.order_id
