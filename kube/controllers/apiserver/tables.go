package apiserver

import (
	"context"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
)

// newPrinters returns the tables of Kubernetes' kinds, when the first one is needed.
func newPrinters() func() *printers.HumanReadableGenerator {
	return sync.OnceValue(func() *printers.HumanReadableGenerator {
		return printers.NewTableGenerator().With(internalversion.AddHandlers)
	})
}

// Table implements [apitest.Extension].
func (c *chain) Table(ctx context.Context, d runtime.Object, kind schema.GroupVersionKind, objects []runtime.Object) (*metav1.Table, error) {
	if d != nil || len(objects) > 0 && isLoose(objects[0]) {
		return customTable(ctx, d, kind, objects)
	}
	list, err := legacyscheme.Scheme.New(schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}.WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, nil //nolint:nilerr // a kind of the user's scheme: the server's own table
	}
	options := printers.GenerateOptions{Wide: true}
	table, err := c.printers().GenerateTable(list, options)
	if err != nil { // there is none for the kind
		return unknownTable(ctx, objects)
	}
	for _, o := range objects {
		converted, err := internal(o.DeepCopyObject(), kind)
		if err != nil {
			return nil, err
		}
		row, err := c.printers().GenerateTable(converted, options)
		if err != nil {
			return nil, err
		}
		table.Rows = append(table.Rows, row.Rows...)
	}
	return table, nil
}

func isLoose(o runtime.Object) bool {
	_, ok := o.(*unstructured.Unstructured)
	return ok
}

// customTable returns the table of custom resources with the columns of their definition.
func customTable(ctx context.Context, d runtime.Object, kind schema.GroupVersionKind, objects []runtime.Object) (*metav1.Table, error) {
	if d == nil {
		return nil, nil
	}
	parsed, err := definition(d)
	if err != nil {
		return nil, err
	}
	tables, err := tableconvertor.New(columnsOf(parsed, kind.Version))
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	for _, o := range objects {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%T has no columns", o)
		}
		list.Items = append(list.Items, *u)
	}
	return tables.ConvertToTable(ctx, list, nil)
}

// columnsOf returns the columns of a version.
func columnsOf(d *apiextensionsv1.CustomResourceDefinition, version string) []apiextensionsv1.CustomResourceColumnDefinition {
	for _, v := range d.Spec.Versions {
		if v.Name == version && len(v.AdditionalPrinterColumns) > 0 {
			return v.AdditionalPrinterColumns
		}
	}
	return []apiextensionsv1.CustomResourceColumnDefinition{{
		Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	}}
}

// unknownTable returns the table of a kind without columns.
func unknownTable(ctx context.Context, objects []runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{Rows: []metav1.TableRow{}}
	tables := rest.NewDefaultTableConvertor(schema.GroupResource{})
	empty, err := tables.ConvertToTable(ctx, &metav1.PartialObjectMetadataList{}, nil)
	if err != nil {
		return nil, err
	}
	table.ColumnDefinitions = empty.ColumnDefinitions
	for _, o := range objects {
		row, err := tables.ConvertToTable(ctx, o, nil)
		if err != nil {
			return nil, err
		}
		table.Rows = append(table.Rows, row.Rows...)
	}
	return table, nil
}
