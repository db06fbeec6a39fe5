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

// Program runs f with what the lab takes for a test, so that a program can start
// real components: a demonstration, a measurement. They are gone when it returns.
// What the lab logs goes to w, and what would fail the test, or skip it, is the
// error. f may return early when ctx ends; nobody makes it.
func Program(ctx context.Context, w io.Writer, f func(t testing.TB) error) (err error) {
	p := &program{ctx: ctx, w: w}
	defer func() { err = errors.Join(err, p.err) }()
	defer p.cleanup()
	defer p.stopped()
	return f(p)
}

// A program is the test that is none. testing.TB cannot be implemented outside
// package testing: what is not here is nil, and not for the lab to use.
type program struct {
	testing.TB
	ctx      context.Context
	w        io.Writer
	cleanups []func()
	err      error // what failed so far
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
