package credentials_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

// The pull secrets of a pod and the files of a node, in the kubelet's order.
func Example() {
	ctx := context.Background()
	secrets := []v1.Secret{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "regcred"},
			Type:       v1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{v1.DockerConfigJsonKey: []byte(`{"auths": {
				"*.reg.io":         {"username": "reader", "password": "s3cret"},
				"eu.reg.io/team":   {"username": "team", "password": "s3cret"}}}`)},
		},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tls"}, Type: v1.SecretTypeTLS},
	}
	own, problems := credentials.FromSecrets(secrets)
	fmt.Println(problems)

	files, err := credentials.NewFiles(credentials.FilesConfig{Paths: credentials.DefaultPaths("/no/kubelet", "", "")[:1]})
	if err != nil {
		log.Fatal(err)
	}
	keyring := credentials.Union{own, files}
	for _, image := range []string{"eu.reg.io/team/app:1", "us.reg.io/app", "nginx"} {
		creds, err := keyring.Lookup(ctx, image, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(image)
		for _, c := range creds {
			fmt.Println("  try", c.Username, "of", c.Source)
		}
	}
	// Output:
	// credentials: secret shop/tls: type "kubernetes.io/tls" is not a pull secret type
	// eu.reg.io/team/app:1
	//   try team of secret shop/regcred
	//   try reader of secret shop/regcred
	// us.reg.io/app
	//   try reader of secret shop/regcred
	// nginx
}

func ExampleMatch() {
	for _, image := range []string{"eu.reg.io/app", "reg.io/app", "a.eu.reg.io/app", "eu.reg.io:5000/app"} {
		ok, err := credentials.Match("https://*.reg.io", image)
		fmt.Println(image, ok, err)
	}
	// Output:
	// eu.reg.io/app true <nil>
	// reg.io/app false <nil>
	// a.eu.reg.io/app false <nil>
	// eu.reg.io:5000/app false <nil>
}
