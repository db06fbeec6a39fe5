package userns_test

import (
	"fmt"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

func ExampleAllocator() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	a, err := userns.New(userns.Config{RootDir: dir, Range: userns.Range{First: 65536, Length: 110 * 65536}})
	if err != nil {
		log.Fatal(err)
	}
	for _, pod := range []types.UID{"web", "db", "web"} {
		m, err := a.Allocate(pod)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: root is %d\n", pod, m.UIDs[0].HostID)
	}
	// Output:
	// web: root is 65536
	// db: root is 131072
	// web: root is 65536
}
