package volume

import (
	"errors"
)

// Definite marks an error of SetUp or Stage after which nothing of the volume is
// there: nothing was begun, or all was undone. Without it a volume that failed
// counts as half there (vol-21).
func Definite(err error) error {
	if err == nil {
		return nil
	}
	return definite{err}
}

type definite struct{ error }

func (d definite) Unwrap() error { return d.error }

func isDefinite(err error) bool {
	_, ok := errors.AsType[definite](err)
	return ok
}
