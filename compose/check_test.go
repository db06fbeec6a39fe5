package compose_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/compose"
)

var optional = []reflect.Type{reflect.TypeFor[reader](), reflect.TypeFor[writer]()}

// reads implements one of the optional interfaces.
type reads struct{}

func (reads) Do()          {}
func (reads) Read() string { return "" }

type pointing struct {
	began time.Time
	next  *complete
}

func (p *pointing) Do() { _, _ = p.began, p.next }

type nested struct {
	state struct{ next part }
}

func (*nested) Do() {}

type containing struct{ next complete }

func (c *containing) Do() { _ = c.next }

// mistyped has an Unwrap that As does not call.
type mistyped struct{ part }

func (m mistyped) Unwrap() part { return m.part }

// intercepting implements what it would hide.
type intercepting struct{ opaque }

func (intercepting) Read() string { return "" }
func (intercepting) Open()        {}
func (intercepting) Write(string) {}

// A user calls a writer that is no part.
type user struct{ file interface{ writer } }

func (user) Do() {}

type file struct{}

func (file) Open()        {}
func (file) Write(string) {}

func TestCheckReportsHiddenInterfaces(t *testing.T) {
	inner := new(complete)
	inNested := new(nested)
	inNested.state.next = inner
	for want, p := range map[string]part{
		"compose_test.opaque hides Read (compose_test.reader) of *compose_test.complete; add Unwrap":                   opaque{inner},
		"*compose_test.opaque hides Read (compose_test.reader) of *compose_test.complete; add Unwrap":                  &wrapper{&opaque{&wrapper{inner}}},
		"compose_test.opaque hides Read (compose_test.reader) of compose_test.reads; add Unwrap":                       opaque{opaque{reads{}}},
		"*compose_test.pointing hides Read (compose_test.reader) of *compose_test.complete; add Unwrap":                &pointing{next: inner},
		"*compose_test.nested hides Read (compose_test.reader) of *compose_test.complete; add Unwrap":                  inNested,
		"*compose_test.containing hides Read (compose_test.reader) of *compose_test.complete; add Unwrap":              new(containing),
		"compose_test.mistyped hides Read (compose_test.reader) of *compose_test.complete; its Unwrap must return any": mistyped{inner},
		"compose_test.reading hides Open, Write (compose_test.writer) of *compose_test.complete; add Unwrap":           reading{opaque{inner}},
	} {
		assert.EqualError(t, compose.Check(p, optional...), want)
	}
}

// reading intercepts one of two interfaces.
type reading struct{ opaque }

func (reading) Read() string { return "" }

func TestCheckAcceptsWhatAsFinds(t *testing.T) {
	inner := new(complete)
	for name, p := range map[string]part{
		"nil":                 nil,
		"nil pointer":         (*pointing)(nil),
		"no wrapper":          inner,
		"nothing to hide":     opaque{user{}},
		"wraps nothing":       opaque{},
		"Unwrap":              &wrapper{&wrapper{inner}},
		"embedded type":       struct{ *complete }{inner},
		"intercepts":          intercepting{opaque{inner}},
		"hides on purpose":    closed{inner},
		"and is wrapped":      &wrapper{closed{inner}},
		"uses another writer": user{file{}},
	} {
		assert.NoError(t, compose.Check(p, optional...), name)
	}
	loop := new(wrapper)
	loop.part = loop
	assert.NoError(t, compose.Check[part](loop, optional...))
	circle := new(opaque)
	circle.part = circle
	assert.NoError(t, compose.Check[part](circle, optional...))
}
