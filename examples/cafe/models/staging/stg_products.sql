select sku, name as product_name, kind, price, kind = 'drink' as is_drink from {{ source('raw', 'products') }}
