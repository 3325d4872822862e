//! Tables that Arrow and NumPy read in place, by the Arrow PyCapsule interface and NumPy's array interface.

use std::ffi::CStr;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, StructArray};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::error::BecalmError;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

fn arrow_error(error: ArrowError) -> PyErr {
    BecalmError::new_err(error.to_string())
}

/// A schema and an array in capsules, which free them if they are not consumed.
fn capsules<'py>(
    py: Python<'py>,
    (array, schema): (FFI_ArrowArray, FFI_ArrowSchema),
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
}

/// A table of a run. Arrow consumers get its columns without copying.
#[pyclass(frozen, module = "becalm")]
pub struct Table(RecordBatch);

impl Table {
    pub const fn new(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

#[pymethods]
impl Table {
    /// The table as an Arrow stream of one batch. A requested schema is ignored, which the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    /// The table as one Arrow array of structs.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        capsules(py, to_ffi(&StructArray::from(self.0.clone()).to_data()).map_err(arrow_error)?)
    }

    /// The Arrow schema of the table.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(arrow_error)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The names of its columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column by its name.
    fn column(&self, name: &str) -> PyResult<Column> {
        let column = self.0.column_by_name(name).cloned().map(Column);
        column.ok_or_else(|| {
            PyKeyError::new_err(format!("there is no column '{name}'; there are {}", self.names().join(", ")))
        })
    }
}

/// A column of a table.
#[pyclass(frozen, module = "becalm")]
pub struct Column(ArrayRef);

#[pymethods]
impl Column {
    /// The Arrow array of the column.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        capsules(py, to_ffi(&self.0.to_data()).map_err(arrow_error)?)
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The type of the rows: a whole number (`int`), a name (`name`) or a boolean (`flag`).
    #[getter]
    fn content(&self) -> &'static str {
        match self.0.data_type() {
            DataType::Dictionary(..) => "name",
            DataType::Boolean => "flag",
            _ => "int",
        }
    }

    /// The names by key, for a column of names; else empty.
    #[getter]
    fn values(&self) -> Vec<String> {
        let names = self.0.as_any_dictionary_opt().and_then(|column| column.values().as_string_opt::<i32>());
        names.map_or_else(Vec::new, |names| names.iter().flatten().map(str::to_owned).collect())
    }

    /// NumPy's view of the column: its numbers, its keys, or its flags, eight per byte from the lowest bit on. Users of the view must keep
    /// the column alive, as NumPy does.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (kind, address, length) = match self.0.data_type() {
            DataType::Int32 => ("i4", self.0.as_primitive::<Int32Type>().values().as_ptr().addr(), self.0.len()),
            DataType::Int64 => ("i8", self.0.as_primitive::<Int64Type>().values().as_ptr().addr(), self.0.len()),
            DataType::Dictionary(..) => {
                let keys = self.0.as_dictionary::<Int32Type>().keys();
                ("i4", keys.values().as_ptr().addr(), keys.len())
            }
            DataType::Boolean => {
                let flags = self.0.as_boolean().values();
                ("u1", flags.values().as_ptr().addr(), flags.values().len())
            }
            other => return Err(BecalmError::new_err(format!("there is no column of {other}"))),
        };
        let order = match kind {
            "u1" => '|',
            _ if cfg!(target_endian = "big") => '>',
            _ => '<',
        };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", format!("{order}{kind}"))?;
        interface.set_item("shape", (length,))?;
        interface.set_item("data", (address, true))?;
        Ok(interface)
    }
}
