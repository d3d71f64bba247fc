// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package table turns objects into the rows that kubectl get prints.
package table

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
)

// NameColumn is the first column of every kind.
func NameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
}

// AgeColumn is the column whose cells Age makes.
func AgeColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Time since the object was created."}
}

// Age says how long ago an object was created.
func Age(clock clock.PassiveClock, created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(clock.Since(created.Time))
}

type convertor[T runtime.Object] struct {
	columns []metav1.TableColumnDefinition
	cells   func(T) []any
}

// NewConvertor returns a convertor of objects of type T, and of lists of them, which has one row of cells for each. It fails for any
// other type.
func NewConvertor[T runtime.Object](columns []metav1.TableColumnDefinition, cells func(T) []any) rest.TableConvertor {
	return convertor[T]{columns, cells}
}

// ConvertToTable implements rest.TableConvertor.
func (c convertor[T]) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = c.columns
	}
	addRow := func(object runtime.Object) error {
		item, ok := object.(T)
		if !ok {
			return fmt.Errorf("neither a %T nor a list of them: %T", item, object)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: c.cells(item), Object: runtime.RawExtension{Object: object}})
		return nil
	}
	if !meta.IsListType(object) {
		if err := addRow(object); err != nil {
			return nil, err
		}
		item, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		table.ResourceVersion = item.GetResourceVersion()
		return table, nil
	}
	list, err := meta.ListAccessor(object)
	if err != nil {
		return nil, err
	}
	table.ResourceVersion, table.Continue, table.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	table.Rows = make([]metav1.TableRow, 0, meta.LenList(object))
	return table, meta.EachListItem(object, addRow)
}
