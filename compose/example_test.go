package compose_test

import (
	"fmt"
	"reflect"

	"github.com/kubeparts/kubeparts/compose"
)

// A Store is a part, and a Counter an optional interface of it.
type (
	Store interface{ Put(key string) }

	Counter interface{ Count() int }
)

type memory struct{ keys []string }

func (m *memory) Put(key string) { m.keys = append(m.keys, key) }
func (m *memory) Count() int     { return len(m.keys) }

// A careless wrapper hides that the Store is a Counter.
type careless struct{ Store }

// A logged wrapper overrides Put. Its Unwrap keeps the other interfaces.
type logged struct{ Store }

func (l logged) Unwrap() any { return l.Store }

func (l logged) Put(key string) {
	fmt.Println("put", key)
	l.Store.Put(key)
}

// The constructor of the user of a Store returns the error.
func Example() {
	fmt.Println(compose.Check[Store](careless{new(memory)}, reflect.TypeFor[Counter]()))

	var store Store = logged{new(memory)}
	fmt.Println(compose.Check(store, reflect.TypeFor[Counter]()))
	store.Put("a")
	if c, ok := compose.As[Counter](store); ok {
		fmt.Println(c.Count())
	}
	// Output:
	// compose_test.careless hides Count (compose_test.Counter) of *compose_test.memory; add Unwrap
	// <nil>
	// put a
	// 1
}
