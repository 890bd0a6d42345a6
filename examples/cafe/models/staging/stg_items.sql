select id as item_id, order_id, sku, quantity from {{ source('raw', 'items') }}
