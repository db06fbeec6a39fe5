package atomic_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/volume/atomic"
)

func Example() {
	dir, err := os.MkdirTemp("", "atomic")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, greeting := range []string{"hello", "hello", "good bye"} {
		changed, err := atomic.Write(dir, atomic.Payload{"greeting": {Data: []byte(greeting), Mode: 0o644}}, atomic.Options{})
		if err != nil {
			log.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "greeting"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(changed, string(data))
	}
	_, err = atomic.Write(dir, atomic.Payload{"../passwd": {}}, atomic.Options{})
	fmt.Println(err)
	// Output:
	// true hello
	// false hello
	// true good bye
	// invalid path: must not contain '..': ../passwd
}
