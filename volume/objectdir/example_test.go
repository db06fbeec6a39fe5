package objectdir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/volume/objectdir"
)

func Example() {
	dir, err := os.MkdirTemp("", "objects")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: hello}\n"
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(manifest), 0o600); err != nil {
		log.Fatal(err)
	}
	objects, err := objectdir.New(objectdir.Config{Dir: dir, Changed: func(kind, namespace, name string) {
		fmt.Println("changed:", kind, namespace, name)
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := objects.Read(); err != nil { // or Run, which watches
		log.Fatal(err)
	}
	cm, err := objects.ConfigMap(context.Background(), "default", "web")
	fmt.Println(cm.Data["greeting"], err)
	_, err = objects.Secret(context.Background(), "default", "web")
	fmt.Println(err)
	// Output:
	// changed: ConfigMap default web
	// hello <nil>
	// secret "web" not found
}
