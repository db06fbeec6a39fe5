package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// A stage stands for the test that package internal/lab asks for: it is what the
// lab's components are cleaned up with, and what fails when one of them cannot do
// its work.
type stage struct {
	testing.TB // nil: nothing but what follows is called

	ctx context.Context
	say func(format string, args ...any)

	mu       sync.Mutex
	cleanups []func()
	errs     []error
}

// A cannot is why a component could not do its work. It is thrown by the stage's
// Fatal and Skip, and caught by onStage.
type cannot struct{ why string }

// onStage runs f, and what it asked to be cleaned up, which is done whatever
// happens, in reverse order.
func onStage(ctx context.Context, say func(string, ...any), f func(*stage) error) (err error) {
	s := &stage{ctx: ctx, say: say}
	defer func() {
		for s.cleanup() {
		}
		err = errors.Join(append([]error{err}, s.errs...)...)
	}()
	return s.try(func() error { return f(s) })
}

// try runs f, and makes an error of what it threw.
func (s *stage) try(f func() error) (err error) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case cannot:
			err = errors.New(thrown.why)
		default:
			panic(thrown)
		}
	}()
	return f()
}

// cleanup does the newest of what is to be done in the end, and reports whether
// there was any.
func (s *stage) cleanup() bool {
	s.mu.Lock()
	if len(s.cleanups) == 0 {
		s.mu.Unlock()
		return false
	}
	last := s.cleanups[len(s.cleanups)-1]
	s.cleanups = slices.Delete(s.cleanups, len(s.cleanups)-1, len(s.cleanups))
	s.mu.Unlock()
	if err := s.try(func() error { last(); return nil }); err != nil {
		s.Errorf("%v", err)
	}
	return true
}

func (s *stage) Helper()                  {}
func (s *stage) Name() string             { return "chaos" }
func (s *stage) Context() context.Context { return s.ctx }
func (s *stage) Failed() bool             { return false } // the end of all logs is of no help to whom there is a report

func (s *stage) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

func (s *stage) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, fmt.Errorf(format, args...))
}

func (s *stage) Logf(format string, args ...any)   { s.say(format, args...) }
func (s *stage) Fatalf(format string, args ...any) { panic(cannot{fmt.Sprintf(format, args...)}) }
func (s *stage) Skipf(format string, args ...any)  { s.Fatalf(format, args...) }
func (s *stage) Fatal(args ...any)                 { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s *stage) Skip(args ...any)                  { s.Fatalf("%s", fmt.Sprint(args...)) }

// must throws an error.
func (s *stage) must(what string, err error) {
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}
