package podenv_test

import (
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// A container reads its settings from a ConfigMap and the address of its database from a service.
// Each variable has its source.
func ExampleNew() {
	c := v1.Container{
		EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}},
		Env:     []v1.EnvVar{{Name: "DB", Value: "pg://$(DB_SERVICE_HOST)/$(NAME)"}},
		Args:    []string{"--level=$(LEVEL)"},
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web"}}

	in := podenv.Inputs{Pod: pod, ConfigMaps: map[string]podenv.Fetched[*v1.ConfigMap]{}}
	configMaps, _, _ := podenv.References(pod, &c)
	for _, name := range configMaps {
		configMap := &v1.ConfigMap{Data: map[string]string{"LEVEL": "debug", "NAME": "shop"}} // from the API server
		in.ConfigMaps[name] = podenv.Fetched[*v1.ConfigMap]{Object: configMap}
	}
	in.Services = []*v1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "db"}, Spec: v1.ServiceSpec{ClusterIP: "10.96.0.7"}},
	}

	env, err := podenv.New(in, &c)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range env.Vars() {
		fmt.Printf("%s=%s (%v)\n", v.Name, v.Value, v.Source)
	}
	args, err := env.ExpandAll(c.Args)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(args)
	// Output:
	// LEVEL=debug (envFrom[0], configMap settings, key LEVEL)
	// NAME=shop (envFrom[0], configMap settings, key NAME)
	// DB=pg://10.96.0.7/shop (env[0])
	// DB_SERVICE_HOST=10.96.0.7 (service db)
	// [--level=debug]
}
