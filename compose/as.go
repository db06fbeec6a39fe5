package compose

// maxWrappers bounds the chain that As follows, in case a wrapper unwraps to itself.
const maxWrappers = 64

// A Wrapper is a part that wraps another one, for example to count or to delay its calls.
//
// A wrapper must not return the wrapped part if a call that bypasses the wrapper would be wrong,
// which is so if
//   - its pods, container IDs or images are not those of the wrapped part: it filters or merges
//     pods, or translates IDs;
//   - it denies or audits access, and a method that it does not implement must be denied or
//     audited as well.
//
// Such a wrapper implements each optional interface that it supports, and its Unwrap returns nil,
// which hides the others. A wrapper that is only to hide a single interface implements it and
// returns [errors.ErrUnsupported], where the interface allows that.
type Wrapper interface {
	// Unwrap returns the wrapped part. Nil: it is not accessible. It must not block.
	Unwrap() any
}

// As returns part as a T, usually an optional interface, and reports whether it is one. A nil
// part is none.
//
// If part is not a T but a [Wrapper], As examines what part unwraps to, then what that unwraps to,
// and so on; at most 64 wrappers. The first T is returned, so that a wrapper which implements an
// optional interface intercepts it, and the others are called on the wrapped part directly. Code
// that calls an optional interface must use As instead of a type assertion.
//
// Safe for concurrent use if the Unwrap methods are.
func As[T any](part any) (T, bool) {
	for range maxWrappers {
		if t, ok := part.(T); ok {
			return t, true
		}
		w, ok := part.(Wrapper)
		if !ok {
			break
		}
		part = w.Unwrap()
	}
	var zero T
	return zero, false
}
