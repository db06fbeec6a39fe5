package dra

import (
	"context"
	"slices"
	"sync"
)

// keyLocks has a lock for each claim for which a call is in progress or waits. Its zero
// value is ready for use.
type keyLocks struct {
	mu sync.Mutex // guards the fields below
	m  map[claimKey]*keyLock
}

// A keyLock is a lock whose holder has sent to held, so that waiting ends with the context.
type keyLock struct {
	held  chan struct{} // of capacity 1
	users int           // holder and waiting
}

// lock locks the keys, or returns why ctx is done. All callers lock in the same order.
func (l *keyLocks) lock(ctx context.Context, keys []claimKey) (unlock func(), err error) {
	keys = slices.Compact(slices.SortedFunc(slices.Values(keys), compareKeys))
	var locked []claimKey
	unlock = func() {
		for _, key := range locked {
			l.unlock(key)
		}
	}
	for _, key := range keys {
		select {
		case l.enter(key).held <- struct{}{}:
			locked = append(locked, key)
		case <-ctx.Done():
			l.leave(key)
			unlock()
			return nil, context.Cause(ctx)
		}
	}
	return unlock, nil
}

func (l *keyLocks) enter(key claimKey) *keyLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[claimKey]*keyLock{}
	}
	k := l.m[key]
	if k == nil {
		k = &keyLock{held: make(chan struct{}, 1)}
		l.m[key] = k
	}
	k.users++
	return k
}

func (l *keyLocks) leave(key claimKey) *keyLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.m[key]
	if k.users--; k.users == 0 {
		delete(l.m, key)
	}
	return k
}

func (l *keyLocks) unlock(key claimKey) { <-l.leave(key).held }
