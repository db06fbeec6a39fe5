package compose

// Add makes *to call f after its present function, which may be nil. If f is nil, *to does
// not change; if *to is nil, it becomes f itself. A call does not allocate.
func Add[A any](to *func(A), f func(A)) {
	switch first := *to; {
	case f == nil:
	case first == nil:
		*to = f
	default:
		*to = func(a A) { first(a); f(a) }
	}
}

// Add0 is [Add] for functions without parameters.
func Add0(to *func(), f func()) {
	switch first := *to; {
	case f == nil:
	case first == nil:
		*to = f
	default:
		*to = func() { first(); f() }
	}
}

// Add2 is [Add] for functions with two parameters.
func Add2[A, B any](to *func(A, B), f func(A, B)) {
	switch first := *to; {
	case f == nil:
	case first == nil:
		*to = f
	default:
		*to = func(a A, b B) { first(a, b); f(a, b) }
	}
}

// Add3 is [Add] for functions with three parameters.
func Add3[A, B, C any](to *func(A, B, C), f func(A, B, C)) {
	switch first := *to; {
	case f == nil:
	case first == nil:
		*to = f
	default:
		*to = func(a A, b B, c C) { first(a, b, c); f(a, b, c) }
	}
}
