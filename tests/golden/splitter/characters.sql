-- case: lines of Windows
SELECT 1;<U+000D>
SELECT<U+000D>
 2;<U+000D>
  SELECT 3

-- case: a carriage return alone ends no line
SELECT 1;<U+000D>SELECT 2

-- case: a carriage return ends a line comment
-- a<U+000D>SELECT 1

-- case: a comment in lines of Windows
-- a;<U+000D>
SELECT 1; -- b<U+000D>
SELECT 2

-- case: tabs count as one column
<U+0009>SELECT 1;<U+0009><U+0009>SELECT 2

-- case: a byte order mark
<U+FEFF>SELECT 1;
SELECT 2

-- case: a byte order mark within a script
SELECT 1;<U+FEFF>SELECT 2

-- case: letters of other scripts
SELECT 'žluť'; SELECT `größe` FROM `表`; SELECT 3

-- case: letters of other scripts without quotes
SELECT größe FROM 表; SELECT 2

-- case: a character outside of the first plane counts as one column
SELECT '😀'; SELECT 2

-- case: a combining accent counts as one column
SELECT 'e<U+0301>'; SELECT 2

-- case: a space of a typesetter
SELECT<U+00A0>1;<U+2003>SELECT 2

-- case: a line separator ends no line
SELECT 1;<U+2028>SELECT 2

-- case: a form feed is space
SELECT<U+000C>1;<U+000C>SELECT 2

-- case: a null character
SELECT <U+0000>; SELECT '<U+0000>'

-- case: an escape character in a name
SELECT `a<U+001B>[31m`; SELECT 2

-- case: a zero-width space is no space
SELECT<U+200B>1; SELECT 2

-- case: a mark of right-to-left text
SELECT '<U+202E>;'; SELECT 2

-- case: quotes of a typesetter are no quotes
SELECT ‘a;b’; SELECT 2

-- case: a full-width semicolon ends nothing
SELECT 1；SELECT 2

-- case: a private character
SELECT '<U+E002>ds<U+E003>'; SELECT 2
