package certificate_test

import (
	"context"
	"fmt"
	"log"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume/certificate"
)

func Example() {
	requests := &signer{requests: map[string]*certificatesv1.PodCertificateRequest{}}
	certificates, err := certificate.New(certificate.Config{Requests: requests})
	if err != nil {
		log.Fatal(err)
	}
	source := certificate.Source{
		Pod:        &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}},
		Volume:     "tls",
		Projection: &v1.PodCertificateProjection{SignerName: "example.com/signer", KeyType: "ECDSAP256"},
	}
	if _, err := certificates.Bundle(context.Background(), source); err != nil {
		fmt.Println(err)
	}
	requests.issue() // the signer of the cluster
	bundle, err := certificates.Bundle(context.Background(), source)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(bundle.Key) > 0, len(bundle.Chain) > 0)
	// Output:
	// credential bundle is not issued yet
	// true true
}
