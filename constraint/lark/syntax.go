package lark

import (
	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The syntax tree as participle fills it; build.go turns it into the public
// one. It takes a little more than the dialect has (priorities, templates,
// %declare, …), so that these are refused by name.

type pFile struct {
	Items []*pItem `parser:"( Newline | @@ )*"`
}

type pItem struct {
	Pos      lexer.Position
	Rule     *pRule   `parser:"( @@"`
	Term     *pTerm   `parser:"| @@"`
	Ignore   *pAlts   `parser:"| '%ignore' @@"`
	Import   *pImport `parser:"| '%import' @@"`
	Options  *string  `parser:"| @Options"`
	Override *pRule   `parser:"| '%override' @@"`
	Declare  *pNames  `parser:"| '%declare' @@ )"`
	// Newline is false when the item is followed by another on its line.
	Newline bool `parser:"@Newline?"`
}

type pNames struct {
	Names []string `parser:"@( RuleName | TermName )*"`
}

type pRule struct {
	Pos      lexer.Position
	Name     string     `parser:"@RuleName"`
	Param    bool       `parser:"@( '::' '_' )?"`
	Template *pTemplate `parser:"@@?"`
	Priority *pPriority `parser:"@@?"`
	Attrs    *pAttrs    `parser:"@@?"`
	Body     *pAlts     `parser:"':' @@"`
}

type pTerm struct {
	Pos      lexer.Position
	Name     string     `parser:"@TermName"`
	Template *pTemplate `parser:"@@?"`
	Priority *pPriority `parser:"@@?"`
	Body     *pAlts     `parser:"':' @@"`
}

type pTemplate struct {
	Pos   lexer.Position
	Names []string `parser:"'{' @( RuleName | TermName ) ( ',' @( RuleName | TermName ) )* '}'"`
}

type pPriority struct {
	Pos   lexer.Position
	Value string `parser:"'.' @Number"`
}

type pAttrs struct {
	Attrs []*pAttr `parser:"'[' ( @@ ( ',' @@ )* ','? )? ']'"`
}

type pAttr struct {
	Pos    lexer.Position
	Key    string  `parser:"@RuleName"`
	Value  *pValue `parser:"( '=' ( @@"`
	Number *string `parser:"| @( Number | NumberE ) ) )?"`
}

type pImport struct {
	Pos   lexer.Position
	Local bool     `parser:"@'.'?"`
	Path  []string `parser:"@( RuleName | TermName ) ( '.' @( RuleName | TermName ) )*"`
	Alias string   `parser:"( '->' @( RuleName | TermName )"`
	Names []*pName `parser:"| '(' @@ ( ',' @@ )* ')' )?"`
}

type pName struct {
	Pos  lexer.Position
	Name string `parser:"@( RuleName | TermName )"`
}

type pAlts struct {
	Pos  lexer.Position
	Alts []*pAlt `parser:"@@ ( Newline? '|' @@ )*"`
}

type pAlt struct {
	Pos   lexer.Position
	Seqs  []*pSeq `parser:"@@ ( '&' @@ )*"`
	Alias string  `parser:"( '->' @RuleName )?"`
	If    *pArg   `parser:"( '%if' @@ )?"`
}

type pSeq struct {
	Pos   lexer.Position
	Exprs []*pExpr `parser:"@@*"`
}

type pExpr struct {
	Pos    lexer.Position
	Not    bool     `parser:"@'~'?"`
	Group  *pAlts   `parser:"( '(' @@ ')'"`
	Maybe  *pAlts   `parser:"| '[' @@ ']'"`
	Value  *pValue  `parser:"| @@ )"`
	Op     string   `parser:"( @Op"`
	Tilde  *pTilde  `parser:"| @@"`
	Braces *pBraces `parser:"| @@ )?"`
}

type pTilde struct {
	Pos  lexer.Position
	From string `parser:"'~' @Number"`
	To   string `parser:"( '..' @Number )?"`
}

type pBraces struct {
	Pos    lexer.Position
	Values []*pValue `parser:"'{' ( @@ ( ',' @@ )*"`
	From   string    `parser:"| @Number"`
	Comma  bool      `parser:"  ( @','"`
	To     string    `parser:"    @Number? )?"`
	// {,m} begins with the comma.
	UpTo bool   `parser:"| @','"`
	Most string `parser:"  @Number? )? '}'"`
}

type pValue struct {
	Pos     lexer.Position
	String  *string  `parser:"( @String"`
	To      *string  `parser:"  ( '..' @String )?"`
	Regexp  *string  `parser:"| @Regexp"`
	Special *string  `parser:"| @SpecialToken"`
	Grammar *string  `parser:"| @GrammarRef"`
	JSON    *string  `parser:"| @JSON"`
	Regex   *string  `parser:"| @Regex"`
	Lark    *pNested `parser:"| '%lark' @@"`
	Name    *string  `parser:"| @( RuleName | TermName )"`
	Param   *pArg    `parser:"  ( '::' @@ )? )"`
}

type pNested struct {
	Pos  lexer.Position
	File *pFile `parser:"'{' @@ '}'"`
}

// pArg is a parameter expression, a condition of %if, or an argument of one.
type pArg struct {
	Pos    lexer.Position
	Number *string `parser:"  @( Number | Hex )"`
	Self   bool    `parser:"| @'_'"`
	Bits   *pBits  `parser:"| @@"`
	Name   *string `parser:"| @RuleName"`
	Call   *pCall  `parser:"  @@?"`
}

type pCall struct {
	Args []*pArg `parser:"'(' ( @@ ( ',' @@ )* )? ')'"`
}

type pBits struct {
	From string `parser:"'[' @Number ':'"`
	To   string `parser:"@Number ']'"`
}

var parser = participle.MustBuild[pFile](
	participle.Lexer(tokenRules),
	participle.UseLookahead(2),
)
