package compose_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/compose"
)

func TestAddKeepsNilAndOrder(t *testing.T) {
	var calls []int
	call := func(i int) { calls = append(calls, i) }
	var f0 func()
	var f1 func(int)
	var f2 func(int, int)
	var f3 func(int, int, int)
	compose.Add0(&f0, nil)
	compose.Add(&f1, nil)
	compose.Add2(&f2, nil)
	compose.Add3(&f3, nil)
	assert.Nil(t, f0)
	assert.Nil(t, f1)
	assert.Nil(t, f2)
	assert.Nil(t, f3)
	for i := range 3 {
		compose.Add0(&f0, func() { call(i) })
		compose.Add(&f1, func(a int) { call(i + a) })
		compose.Add2(&f2, func(a, b int) { call(i + a + b) })
		compose.Add3(&f3, func(a, b, c int) { call(i + a + b + c) })
		compose.Add(&f1, nil)
	}
	f0()
	f1(10)
	f2(10, 10)
	f3(10, 10, 10)
	assert.Equal(t, []int{0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32}, calls)
	var n int
	add := func(i int) { n += i }
	f1 = add
	compose.Add(&f1, add)
	assert.Zero(t, testing.AllocsPerRun(100, func() { f1(1) }))
}

// Hooks observe a part.
type Hooks struct {
	Done func(name string)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Done, o.Done)
	}
	return h
}

// Join adds the hooks of a log to those of metrics.
func ExampleAdd() {
	metrics := Hooks{Done: func(string) { fmt.Println("count") }}
	hooks := metrics.Join(Hooks{Done: func(name string) { fmt.Println("log", name) }}, Hooks{})
	hooks.Done("web")
	// Output:
	// count
	// log web
}
