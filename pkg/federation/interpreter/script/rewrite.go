package script

import (
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// Names of the functions that stand for operators. Scripts cannot write them; one that finds and replaces them gains
// nothing, since every function that it can reach counts.
const (
	concatName = "\x00concat"
	tableName  = "\x00table"
	keyName    = "\x00key"
	setName    = "\x00set"
)

// rewrite replaces, in place, what allocates more than a constant by calls to functions that count.
func rewrite(statements []ast.Stmt) {
	for i, statement := range statements {
		statements[i] = rewriteStatement(statement)
	}
}

func rewriteStatement(statement ast.Stmt) ast.Stmt {
	switch s := statement.(type) {
	case *ast.AssignStmt:
		rewriteAll(s.Lhs)
		rewriteAll(s.Rhs)
		return rewriteAssignment(s)
	case *ast.LocalAssignStmt:
		rewriteAll(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = rewriteExpression(s.Expr)
	case *ast.DoBlockStmt:
		rewrite(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = rewriteExpression(s.Condition)
		rewrite(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = rewriteExpression(s.Condition)
		rewrite(s.Stmts)
	case *ast.IfStmt:
		s.Condition = rewriteExpression(s.Condition)
		rewrite(s.Then)
		rewrite(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = rewriteExpression(s.Init), rewriteExpression(s.Limit), rewriteExpression(s.Step)
		rewrite(s.Stmts)
	case *ast.GenericForStmt:
		rewriteAll(s.Exprs)
		rewrite(s.Stmts)
	case *ast.FuncDefStmt:
		rewrite(s.Func.Stmts)
	case *ast.ReturnStmt:
		rewriteAll(s.Exprs)
	}
	return statement
}

func rewriteAll(expressions []ast.Expr) {
	for i, expression := range expressions {
		expressions[i] = rewriteExpression(expression)
	}
}

func rewriteExpression(expression ast.Expr) ast.Expr {
	switch e := expression.(type) {
	case *ast.AttrGetExpr:
		e.Object, e.Key = rewriteExpression(e.Object), rewriteExpression(e.Key)
	case *ast.TableExpr:
		rewriteFields(e)
		return call(e, tableName, e)
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = rewriteExpression(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = rewriteExpression(e.Receiver)
		}
		rewriteAll(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = rewriteExpression(e.Lhs), rewriteExpression(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = rewriteExpression(e.Lhs), rewriteExpression(e.Rhs)
	case *ast.StringConcatOpExpr:
		return call(e, concatName, rewriteExpression(e.Lhs), rewriteExpression(e.Rhs))
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = rewriteExpression(e.Lhs), rewriteExpression(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		e.Expr = rewriteExpression(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = rewriteExpression(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = rewriteExpression(e.Expr)
	case *ast.FunctionExpr:
		rewrite(e.Stmts)
	}
	return expression
}

// rewriteFields checks keys of a constructor that may be large numbers.
func rewriteFields(table *ast.TableExpr) {
	for _, field := range table.Fields {
		field.Value = rewriteExpression(field.Value)
		if field.Key == nil {
			continue
		}
		if _, constant := field.Key.(*ast.StringExpr); !constant {
			field.Key = call(field.Key, keyName, rewriteExpression(field.Key))
		}
	}
}

// indexed tells whether a target of an assignment is an index that may be a large number.
func indexed(target ast.Expr) (*ast.AttrGetExpr, bool) {
	index, ok := target.(*ast.AttrGetExpr)
	if !ok {
		return nil, false
	}
	_, constant := index.Key.(*ast.StringExpr)
	return index, !constant
}

// rewriteAssignment turns assignments to an index into calls. In an assignment to several targets, all expressions are
// evaluated into locals first, as Lua does.
func rewriteAssignment(s *ast.AssignStmt) ast.Stmt {
	if len(s.Lhs) == 1 {
		if index, ok := indexed(s.Lhs[0]); ok {
			return callStatement(s, setName, append([]ast.Expr{index.Object, index.Key}, s.Rhs...)...)
		}
		return s
	}
	evaluate := &ast.LocalAssignStmt{}
	evaluate.SetLine(s.Line())
	local := func(expression ast.Expr) ast.Expr {
		name := "\x00" + string(rune('0'+len(evaluate.Names)))
		evaluate.Names = append(evaluate.Names, name)
		if expression != nil {
			evaluate.Exprs = append(evaluate.Exprs, expression)
		}
		return identifier(s, name)
	}
	targets := make([]ast.Expr, len(s.Lhs))
	found := false
	for i, target := range s.Lhs {
		targets[i] = target
		if index, ok := indexed(target); ok {
			found = true
			moved := &ast.AttrGetExpr{Object: local(index.Object), Key: local(index.Key)}
			moved.SetLine(index.Line())
			targets[i] = moved
		}
	}
	if !found {
		return s
	}
	values := make([]ast.Expr, len(targets))
	for i := range targets {
		values[i] = local(nil)
	}
	evaluate.Exprs = append(evaluate.Exprs, s.Rhs...)
	block := &ast.DoBlockStmt{Stmts: []ast.Stmt{evaluate}}
	block.SetLine(s.Line())
	block.SetLastLine(s.LastLine())
	for i, target := range targets {
		assign := &ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{values[i]}}
		assign.SetLine(s.Line())
		assign.SetLastLine(s.LastLine())
		block.Stmts = append(block.Stmts, rewriteAssignment(assign))
	}
	return block
}

func identifier(at ast.PositionHolder, name string) *ast.IdentExpr {
	result := &ast.IdentExpr{Value: name}
	result.SetLine(at.Line())
	result.SetLastLine(at.LastLine())
	return result
}

func call(at ast.PositionHolder, name string, arguments ...ast.Expr) *ast.FuncCallExpr {
	result := &ast.FuncCallExpr{Func: identifier(at, name), Args: arguments, AdjustRet: true}
	result.SetLine(at.Line())
	result.SetLastLine(at.LastLine())
	return result
}

func callStatement(at ast.PositionHolder, name string, arguments ...ast.Expr) *ast.FuncCallStmt {
	result := &ast.FuncCallStmt{Expr: call(at, name, arguments...)}
	result.SetLine(at.Line())
	result.SetLastLine(at.LastLine())
	return result
}

// operators are the functions that rewritten scripts call.
func (r *run) operators() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{concatName: r.concat, tableName: r.table, keyName: r.key, setName: r.set}
}

func (r *run) concat(state *lua.LState) int {
	left, right := state.Get(1), state.Get(2)
	for _, value := range []lua.LValue{left, right} {
		if !lua.LVCanConvToString(value) {
			state.RaiseError("attempt to concatenate a %s value", value.Type())
		}
	}
	a, b := lua.LVAsString(left), lua.LVAsString(right)
	r.text(state, len(a)+len(b))
	state.Push(lua.LString(a + b))
	return 1
}

// What tables take: one with its first few entries, an entry of a list, and another entry.
const (
	bytesOfTable = 2048
	bytesOfValue = 16
	bytesOfEntry = 128
)

func (r *run) table(state *lua.LState) int {
	table := state.CheckTable(1)
	r.allocate(state, bytesOfTable+bytesOfValue*table.Len())
	return 1
}

// maxConstructorIndex is the largest number that may be an index in a table constructor.
const maxConstructorIndex = 1024

func (r *run) key(state *lua.LState) int {
	if n, ok := state.Get(1).(lua.LNumber); ok && n > maxConstructorIndex {
		state.RaiseError("index %v in a table constructor; assign it afterwards", n)
	}
	return 1
}

func (r *run) set(state *lua.LState) int {
	if table, ok := state.Get(1).(*lua.LTable); ok {
		r.reserve(state, table, state.Get(2))
	}
	state.SetTable(state.Get(1), state.Get(2), state.Get(3))
	return 0
}

// reserve counts the entries that an assignment beyond the end of a list makes: the virtual machine fills the gap.
func (r *run) reserve(state *lua.LState, table *lua.LTable, key lua.LValue) {
	index, ok := key.(lua.LNumber)
	if !ok || index < 1 {
		r.allocate(state, bytesOfEntry)
		return
	}
	gap := bytesOfValue
	if index < lua.LNumber(lua.MaxArrayIndex) {
		gap += bytesOfValue * max(0, int(index)-table.Len())
	}
	r.allocate(state, gap)
}
