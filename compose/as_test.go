package compose_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/compose"
)

// A part is a required interface, and reader and writer are optional ones.
type (
	part interface{ Do() }

	reader interface{ Read() string }
	writer interface {
		Open()
		Write(s string)
	}
)

type complete struct{ name string }

func (*complete) Do()            {}
func (c *complete) Read() string { return c.name }
func (*complete) Open()          {}
func (*complete) Write(string)   {}

// opaque has no Unwrap.
type opaque struct{ part }

type wrapper struct{ part }

func (w *wrapper) Unwrap() any { return w.part }

// closed hides the wrapped part on purpose.
type closed struct{ part }

func (closed) Unwrap() any { return nil }

type readingWrapper struct{ wrapper }

func (*readingWrapper) Read() string { return "intercepted" }

func TestAsUnwrapsWrappers(t *testing.T) {
	inner := new(complete)
	w, ok := compose.As[writer](&wrapper{&wrapper{inner}})
	assert.True(t, ok)
	assert.Same(t, inner, w)

	for name, p := range map[string]part{"no Unwrap": opaque{inner}, "no Unwrap below": &wrapper{opaque{inner}}, "closed": closed{inner}} {
		_, ok = compose.As[writer](p)
		assert.False(t, ok, name)
	}
}

func TestAsPrefersTheOutermost(t *testing.T) {
	outer := &readingWrapper{wrapper{new(complete)}}
	r, ok := compose.As[reader](&wrapper{outer})
	assert.True(t, ok)
	assert.Same(t, outer, r)
}

func TestAsOfNil(t *testing.T) {
	for _, p := range []any{nil, part(nil), &wrapper{}} {
		_, ok := compose.As[reader](p)
		assert.False(t, ok)
	}
}

func TestAsReturnsWhenAWrapperUnwrapsToItself(t *testing.T) {
	w := new(wrapper)
	w.part = w
	_, ok := compose.As[reader](w)
	assert.False(t, ok)
}

func TestAsDoesNotAllocate(t *testing.T) {
	var p part = &wrapper{&wrapper{new(complete)}}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = compose.As[writer](p) }))
}
