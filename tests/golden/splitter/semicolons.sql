-- case: one statement without a semicolon
SELECT 1

-- case: one statement with a semicolon
SELECT 1;

-- case: two statements in one line
SELECT 1; SELECT 2;

-- case: two statements without space
SELECT 1;SELECT 2

-- case: an empty script


-- case: only spaces
   

-- case: only semicolons
;;;

-- case: empty statements between others
;SELECT 1;;
;
SELECT 2;;

-- case: the last statement has no semicolon
SELECT 1;
SELECT 2

-- case: a statement over several lines
SELECT
  1,
  2
;
SELECT 3;

-- case: a semicolon on a line of its own
SELECT 1
;
;
SELECT 2

-- case: an indented statement
    SELECT 1;
  SELECT 2;

-- case: spaces before a semicolon
SELECT 1   ;

-- case: blank lines between statements


SELECT 1;


SELECT 2;



-- case: a semicolon in parentheses ends the statement
SELECT (1; SELECT 2)

-- case: words in any case
select 1; Insert Into t Values (1); cReAtE vIeW v aS tAbLe t

-- case: an unknown statement is split too
FOO bar; SELECT 1

-- case: a single word
SELECT

-- case: a single symbol
*

-- case: symbols without words
+-*/ ; = ;
