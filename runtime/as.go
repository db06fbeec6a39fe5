package runtime

// maxWrappers bounds the chain that As follows, in case a wrapper unwraps to itself.
const maxWrappers = 64

// As returns v as a T, usually one of the optional interfaces of this package, and reports
// whether it is one. v is a [Runtime] or a part of one, such as a [Lister] or an [Execer];
// nil is none.
//
// A Runtime that wraps another one, for example to count or to delay its calls, has a method
//
//	Unwrap() runtime.Runtime
//
// that returns the wrapped Runtime. If v is not a T, As examines what v unwraps to, then what
// that unwraps to, and so on; at most 64 wrappers. The first T wins, so that a wrapper which
// implements an optional interface intercepts it, and the others are called on the wrapped
// Runtime directly. Code that calls an optional interface must use As instead of a type
// assertion.
//
// A wrapper must not implement Unwrap if a call that bypasses it would be wrong, which is so if
//   - its pods, container IDs or images are not those of the wrapped Runtime: it filters or
//     merges pods, or translates IDs;
//   - it denies or audits access, and a method that it does not implement must be denied or
//     audited as well.
//
// Such a wrapper implements each optional interface that it supports. A wrapper that is only to
// hide a single interface implements it and returns [ErrUnsupported], where the interface
// allows that.
//
// Safe for concurrent use if the Unwrap methods are.
func As[T any](v any) (T, bool) {
	for range maxWrappers {
		if t, ok := v.(T); ok {
			return t, true
		}
		w, ok := v.(interface{ Unwrap() Runtime })
		if !ok {
			break
		}
		v = w.Unwrap()
	}
	var zero T
	return zero, false
}
