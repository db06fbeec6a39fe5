package lab

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAProgramHasALabLikeATest(t *testing.T) {
	var out bytes.Buffer
	var order []string
	err := Program(t.Context(), &out, func(t testing.TB) error {
		t.Helper()
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() {
			order = append(order, "second")
			t.Fatalf("no end")
		})
		t.Logf("at %s\n", "work")
		assert.NoError(t, t.Context().Err())
		t.Fatal("it is ", "broken")
		return errors.New("not reached")
	})
	assert.EqualError(t, err, "it is broken\nno end")
	assert.Equal(t, []string{"second", "first"}, order)
	assert.Equal(t, "at work\n", out.String())

	assert.EqualError(t, Program(t.Context(), &out, func(testing.TB) error { return errors.New("mine") }), "mine")
	assert.NoError(t, Program(t.Context(), &out, func(t testing.TB) error { Need(t); return nil }))
	err = Program(t.Context(), &out, func(t testing.TB) error { Need(t, "moon"); return nil })
	assert.ErrorContains(t, err, `unknown need "moon"`)
	assert.PanicsWithValue(t, "a bug", func() { _ = Program(t.Context(), &out, func(testing.TB) error { panic("a bug") }) })
}
