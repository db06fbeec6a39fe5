package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// Program runs f with a testing.TB, so that a program that is not a test can start real
// components, for a demonstration or a measurement. They are removed before it returns.
// Logs are written to w. A failure or skip is returned as the error. f should return when
// ctx is done.
func Program(ctx context.Context, w io.Writer, f func(t testing.TB) error) (err error) {
	p := &program{ctx: ctx, w: w}
	defer func() { err = errors.Join(err, p.err) }()
	defer p.cleanup()
	defer p.stopped()
	return f(p)
}

// A program is the testing.TB of Program. testing.TB cannot be implemented outside
// package testing: the embedded one is nil, and the lab must not use its other methods.
type program struct {
	testing.TB
	ctx      context.Context
	w        io.Writer
	cleanups []func()
	err      error // first failure
}

// stop is the panic that ends f.
type stop struct{}

func (p *program) stopped() {
	if r := recover(); r != nil && r != any(stop{}) {
		panic(r)
	}
}

func (p *program) cleanup() {
	for _, f := range slices.Backward(p.cleanups) {
		func() {
			defer p.stopped()
			f()
		}()
	}
}

func (p *program) Helper()                  {}
func (p *program) Context() context.Context { return p.ctx }
func (p *program) Cleanup(f func())         { p.cleanups = append(p.cleanups, f) }
func (p *program) Failed() bool             { return p.err != nil }

func (p *program) Logf(format string, args ...any) {
	fmt.Fprintln(p.w, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (p *program) Errorf(format string, args ...any) {
	p.err = errors.Join(p.err, fmt.Errorf(format, args...))
}

func (p *program) Fatal(args ...any) { p.Fatalf("%s", fmt.Sprint(args...)) }

func (p *program) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	panic(stop{})
}
