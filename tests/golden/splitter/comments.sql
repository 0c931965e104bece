-- case: a comment before a statement
-- first
SELECT 1;

-- case: a comment behind a statement
SELECT 1; -- last

-- case: a comment before the semicolon
SELECT 1 -- no end;
; SELECT 2

-- case: a semicolon in a line comment
SELECT 1 -- a;b
, 2; SELECT 3

-- case: a semicolon in a block comment
SELECT 1 /* a;b */, 2; SELECT 3

-- case: a comment over several lines
/* a
 b;
 c */ SELECT 1;

-- case: a nested comment
SELECT /* a /* b; */ c; */ 1; SELECT 2

-- case: comments nested three deep
/* /* /* ; */ ; */ ; */ SELECT 1

-- case: only a line comment
-- nothing

-- case: only a block comment
/* nothing */

-- case: only comments and semicolons
-- a
; /* b */ ;

-- case: a line comment without text
--
SELECT 1

-- case: a comment of two stars
/**/SELECT/***/1

-- case: a comment between two words
SELECT/* ; */1

-- case: three dashes
--- a;
SELECT 1

-- case: two minus signs begin a comment
SELECT 1--2
;SELECT 3

-- case: one minus sign begins none
SELECT 1 - 2, - 3; SELECT 4

-- case: a double slash begins none
SELECT 4 // 2; SELECT 3

-- case: a hash begins none
# a
SELECT 1

-- case: a quote in a block comment
SELECT /* it's " ` */ 1; SELECT 2

-- case: a line comment with the end of a block comment
-- */
SELECT 1

-- case: a line comment in a block comment
/* -- */ SELECT 1

-- case: a line comment that ends in a backslash goes on
-- a \
; b
SELECT 1

-- case: a hint stays in the statement
SELECT /*+ BROADCAST(t) */ * FROM t; SELECT 2

-- case: a hint is no comment, so its semicolon ends the statement
SELECT /*+ A; B */ 1

-- case: a hint in a comment
/* /*+ A */ SELECT 1; */ SELECT 2

-- case: a block comment that is never closed
SELECT 1; /* SELECT 2;

-- case: a nested comment that is closed once
SELECT 1; /* a /* b */ SELECT 2;

-- case: a block comment that is closed twice
SELECT /* a */ */ 1; SELECT 2

-- case: a comment of a single slash and star
/*

-- case: a comment that is closed by its own star
/*/ SELECT 1

-- case: a comment at both ends
/* a */ SELECT 1 /* b */; /* c */ SELECT 2 -- d

-- case: a variable in a comment stays as it is
-- ${none}
SELECT 1 /* ${none */; SELECT 2
