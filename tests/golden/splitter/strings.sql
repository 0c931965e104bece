-- case: a semicolon in single quotes
SELECT 'a;b'; SELECT 2

-- case: a semicolon in double quotes
SELECT "a;b"; SELECT 2

-- case: a semicolon in back-ticks
SELECT `a;b`; SELECT 2

-- case: a doubled single quote
SELECT 'it''s; fine'; SELECT 2

-- case: a doubled double quote
SELECT "a"";b"; SELECT 2

-- case: a doubled back-tick
SELECT `a``;b`; SELECT 2

-- case: an escaped single quote
SELECT 'it\'s; fine'; SELECT 2

-- case: an escaped double quote
SELECT "a\";b"; SELECT 2

-- case: an escaped backslash at the end
SELECT 'a\\'; SELECT 2

-- case: three backslashes and a quote
SELECT 'a\\\';b'; SELECT 2

-- case: a backslash in back-ticks escapes nothing
SELECT `a\`; SELECT 2

-- case: a raw string ends at the first quote
SELECT r'a\'; SELECT 2

-- case: a raw string in double quotes
SELECT R"a\;"; SELECT 2

-- case: a word that ends in r before a string
SELECT fr'a\';b'; SELECT 2

-- case: the other quote in a string
SELECT '"', "'", '`', `'`; SELECT 2

-- case: a comment in a string
SELECT '-- a /* b */;'; SELECT 2

-- case: a line break in a string
SELECT 'a
;b'; SELECT 2

-- case: an empty string
SELECT '', "", r''; SELECT 2

-- case: two strings side by side
SELECT 'a' ';' 'b'; SELECT 2

-- case: four single quotes
SELECT ''''; SELECT 2

-- case: a string with dollars is not quoted by them
SELECT $$a;b$$

-- case: a tagged dollar quote is none
SELECT $x$ ; $x$

-- case: a hexadecimal literal
SELECT X'1F', x'00;'; SELECT 2

-- case: a single quote that is never closed
SELECT 1; SELECT 'a; SELECT 2

-- case: a double quote that is never closed
SELECT 1;
  SELECT "a

-- case: a back-tick that is never closed
SELECT 1;
SELECT a, `b; SELECT 2

-- case: an escaped quote leaves the string open
SELECT 'a\'

-- case: a raw string that is never closed
SELECT r'a

-- case: a quote at the end
SELECT 1; '

-- case: an apostrophe outside of a string
SELECT 1; it's; SELECT 2

-- case: an apostrophe in a comment
SELECT 1 -- it's
; SELECT 2
