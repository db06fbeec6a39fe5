package payload_test

import (
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/payload"
)

func ExampleConfigMap() {
	cm := &v1.ConfigMap{Data: map[string]string{"nginx.conf": "worker_processes 1;"}}
	files, err := payload.ConfigMap(cm, []v1.KeyToPath{{Key: "nginx.conf", Path: "conf.d/main.conf"}}, payload.Defaults{}, false)
	if err != nil {
		log.Fatal(err)
	}
	for path, f := range files {
		fmt.Println(path, f.Mode, string(f.Data))
	}
	_, err = payload.ConfigMap(cm, []v1.KeyToPath{{Key: "mime.types", Path: "mime"}}, payload.Defaults{}, false)
	fmt.Println(err)
	// Output:
	// conf.d/main.conf -rw-r--r-- worker_processes 1;
	// configmap references non-existent config key: mime.types
}
