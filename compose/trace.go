package compose

import "context"

// AddTrace makes *to call f with the context that its present function returns, and end both
// in reverse order. If one of them is nil, *to becomes the other.
func AddTrace[E any](to *func(context.Context) (context.Context, func(E)), f func(context.Context) (context.Context, func(E))) {
	switch first := *to; {
	case f == nil:
	case first == nil:
		*to = f
	default:
		*to = func(ctx context.Context) (context.Context, func(E)) {
			ctx, endFirst := first(ctx)
			ctx, end := f(ctx)
			return ctx, func(e E) { end(e); endFirst(e) }
		}
	}
}

// AddTrace2 is [AddTrace] for functions with a second parameter.
func AddTrace2[A, E any](to *func(context.Context, A) (context.Context, func(E)), f func(context.Context, A) (context.Context, func(E))) {
	switch first := *to; {
	case f == nil:
	case first == nil:
		*to = f
	default:
		*to = func(ctx context.Context, a A) (context.Context, func(E)) {
			ctx, endFirst := first(ctx, a)
			ctx, end := f(ctx, a)
			return ctx, func(e E) { end(e); endFirst(e) }
		}
	}
}
