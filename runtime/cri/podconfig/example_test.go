package podconfig_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func ExampleContainer() {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u-1"},
		Spec: v1.PodSpec{
			SecurityContext: &v1.PodSecurityContext{RunAsNonRoot: new(true)},
			Containers:      []v1.Container{{Name: "shop", Image: "shop:1", Command: []string{"/bin/shop", "--in=$(CITY)"}}},
		},
	}
	in := podconfig.PodInput{Pod: pod, Node: podconfig.Node{MemoryBytes: 8 << 30, Security: podconfig.Security{SeccompDefault: true}}}
	shop := podconfig.ContainerInput{
		Container: &pod.Spec.Containers[0], Image: &runtimeapi.ImageSpec{Image: "sha256:1"},
		User: podconfig.User{UID: new(int64(65532))},
		Env:  []v1.EnvVar{{Name: "CITY", Value: "Riga"}},
	}
	config, err := podconfig.Container(in, shop)
	if err != nil {
		log.Fatal(err)
	}
	sc := config.Linux.SecurityContext
	fmt.Println(config.Command, "as", sc.RunAsUser.Value, "seccomp", sc.Seccomp.ProfileType)

	shop.User = podconfig.User{Name: "www-data"}
	_, err = podconfig.Container(in, shop)
	fmt.Println(err)
	// Output:
	// [/bin/shop --in=Riga] as 65532 seccomp RuntimeDefault
	// container has runAsNonRoot and image has non-numeric user (www-data), cannot verify user is non-root (pod: "web_prod(u-1)", container: shop)
}

func ExampleSysctls_Admit() {
	sysctls, err := podconfig.NewSysctls("6.1.0", []string{"net.core.*"})
	if err != nil {
		log.Fatal(err)
	}
	pod := &v1.Pod{Spec: v1.PodSpec{SecurityContext: &v1.PodSecurityContext{Sysctls: []v1.Sysctl{
		{Name: "net.core.somaxconn", Value: "1024"},
		{Name: "kernel.msgmax", Value: "65536"},
	}}}}
	if rejection := sysctls.Admit(context.Background(), pod); rejection != nil {
		fmt.Println(rejection.Reason+":", rejection.Message)
	}
	// Output: SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowlisted
}
