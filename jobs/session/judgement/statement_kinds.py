"""Spark's statements by what they do to tables: every class that Spark, Delta and Iceberg have for one. Pure.

What is not listed is not run: nobody could say what it changes. A test compares the lists with what the jars hold.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

__all__ = ["CALLED", "KINDS", "QUERIES", "StatementKind", "kind_of"]


class StatementKind(StrEnum):
    """What a statement does, as far as its class tells."""

    QUERY = "query"
    """Yields rows, and changes nothing."""
    SHOWS = "shows"
    """Tells something, or changes something of the session alone."""
    DEFINES = "defines"
    """Changes what the catalog or a log says of a table, or how its rows are stored, and no row."""
    WRITES = "writes"
    """Changes rows of one table: recorded, where that is a Delta table."""
    UNRECORDED = "unrecorded"
    """Changes rows or files in a way of Spark's own that no record tells of."""
    DYNAMIC = "dynamic"
    """Runs a text that is seen only while it runs."""
    INTERNAL = "internal"
    """Is a part of a plan, or a step of a statement, and none by itself."""
    UNKNOWN = "unknown"
    """Is on no list."""


_READERS: Final = """
    Aggregate AsOfJoin CTERelationDef CTERelationRef Deduplicate Distinct DomainJoin EmptyRelation
    Except Expand Filter Generate GlobalLimit HiveTableRelation Intersect Join LateralJoin LimitAll
    LocalLimit LocalRelation LogicalRelation DataSourceV2Relation Offset OneRowRelation PipeOperator
    Pivot Project Range RebalancePartitions RelationTimeTravel Repartition RepartitionByExpression
    ResolvedHint ResolvedInlineTable SQLFunctionNode SQLTableFunction Sample Sort Subquery SubqueryAlias
    Tail Transpose Union UnionLoop UnionLoopRef Unpivot UnresolvedHaving UnresolvedHint
    UnresolvedInlineTable UnresolvedRelation UnresolvedSubqueryColumnAliases UnresolvedTVFAliases
    UnresolvedTableValuedFunction UnresolvedTranspose UnresolvedWith View Window WindowGroupLimit
    WithCTE WithWindowDefinition
    """
QUERIES: Final = frozenset(_READERS.split())
"""What the queries of a reader are made of."""
_OTHER_QUERIES: Final = """
    AppendColumns AppendColumnsWithObject ArrowEvalPython ArrowEvalPythonUDTF AttachDistributedSequence
    BatchEvalPython BatchEvalPythonUDTF CDCNameBased CDCPathBased CoGroup CollectMetrics CommandResult
    DataFrameDropColumns DeduplicateWithinWatermark DeserializeToObject EventTimeWatermark ExternalRDD
    FlatMapCoGroupsInArrow FlatMapCoGroupsInPandas FlatMapGroupsInArrow FlatMapGroupsInPandas
    FlatMapGroupsInPandasWithState FlatMapGroupsInR FlatMapGroupsInRWithArrow FlatMapGroupsWithState
    InMemoryRelation LogicalRDD MapElements MapGroups MapInArrow MapInPandas MapPartitions
    MapPartitionsInR MapPartitionsInRWithArrow MultiResult PythonWorkerLogs ScriptTransformation
    SerializeFromObject TableChanges TransformWithState TransformWithStateInPySpark TypedFilter
    UnresolvedEventTimeWatermark
    """
"""Queries that run somebody's code, or read what no catalog names."""
_SHOWS: Final = """
    AddArchivesCommand AddFilesCommand AddJarsCommand CacheTable CacheTableAsSelect CreateTempViewUsing
    CreateVariable DescribeColumn DescribeColumnCommand DescribeDatabaseCommand
    DescribeDeltaDetailCommand DescribeDeltaHistory DescribeDeltaHistoryCommand DescribeFunction
    DescribeFunctionCommand DescribeNamespace DescribeProcedureCommand DescribeQueryCommand
    DescribeRelation DescribeRelationJsonCommand DescribeTableCommand DropTempViewCommand DropVariable
    ExplainCommand ListArchivesCommand ListFilesCommand ListJarsCommand NoopCommand RefreshFunction
    RefreshFunctionCommand RefreshResource RefreshTable RefreshTableCommand ResetCommand
    SetCatalogAndNamespace SetCatalogCommand SetCommand SetNamespaceCommand SetVariable
    ShowCatalogsCommand ShowColumns ShowColumnsCommand ShowCreateTable ShowCreateTableAsSerdeCommand
    ShowCreateTableCommand ShowCurrentNamespaceCommand ShowDeltaPartitionsCommand
    ShowDeltaTableColumnsCommand ShowFunctions ShowFunctionsCommand ShowIcebergViews
    ShowNamespacesCommand ShowPartitions ShowPartitionsCommand ShowProceduresCommand ShowTablePartition
    ShowTableProperties ShowTablePropertiesCommand ShowTables ShowTablesCommand ShowTablesExtended
    ShowViews ShowViewsCommand UncacheTable
    """
_DEFINES: Final = """
    AddCheckConstraint AddColumns AddConstraint AddPartitionField AddPartitions AlterColumnSyncIdentity
    AlterColumns AlterDatabasePropertiesCommand AlterDatabaseSetLocationCommand
    AlterTableAddColumnsCommand AlterTableAddColumnsDeltaCommand AlterTableAddConstraint
    AlterTableAddConstraintDeltaCommand AlterTableAddPartitionCommand AlterTableChangeColumnCommand
    AlterTableChangeColumnDeltaCommand AlterTableClusterBy AlterTableClusterByDeltaCommand
    AlterTableCollation AlterTableDropColumnsDeltaCommand AlterTableDropConstraint
    AlterTableDropConstraintDeltaCommand AlterTableDropFeature AlterTableDropFeatureDeltaCommand
    AlterTableRenameCommand AlterTableRenamePartitionCommand AlterTableReplaceColumnsDeltaCommand
    AlterTableSerDePropertiesCommand AlterTableSetLocationCommand AlterTableSetLocationDeltaCommand
    AlterTableSetPropertiesCommand AlterTableSetPropertiesDeltaCommand AlterTableUnsetPropertiesCommand
    AlterTableUnsetPropertiesDeltaCommand AlterViewAs AlterViewAsCommand AlterViewSchemaBinding
    AlterViewSchemaBindingCommand AnalyzeColumn AnalyzeColumnCommand AnalyzePartitionCommand
    AnalyzeTable AnalyzeTableCommand AnalyzeTables AnalyzeTablesCommand CommentOnNamespace
    CommentOnTable CreateDataSourceTableCommand CreateDatabaseCommand CreateFunction
    CreateFunctionCommand CreateIcebergView CreateIndex CreateNamespace CreateOrReplaceBranch
    CreateOrReplaceTag CreateSQLFunctionCommand CreateTableCommand CreateTableLikeCommand
    CreateUserDefinedFunction CreateView CreateViewCommand DeltaGenerateCommand DeltaReorgTable
    DeltaReorgTableCommand DropBranch DropColumns DropConstraint DropDatabaseCommand DropFunction
    DropFunctionCommand DropIcebergView DropIdentifierFields DropIndex DropNamespace DropPartitionField
    DropTable DropTableCommand DropTag DropView OptimizeTableCommand RecoverPartitions RenameColumn
    RenamePartitions RenameTable RepairTable RepairTableCommand ReplaceColumns ReplacePartitionField
    RowTrackingBackfillCommand RowTrackingUnBackfillCommand SetIdentifierFields
    SetNamespaceCollationCommand SetNamespaceLocation SetNamespaceProperties SetTableLocation
    SetTableProperties SetTableSerDeProperties SetViewProperties SetWriteDistributionAndOrdering
    UnsetNamespacePropertiesCommand UnsetTableProperties UnsetViewProperties
    """
_WRITES: Final = """
    AppendData CreateDataSourceTableAsSelectCommand CreateHiveTableAsSelectCommand CreateTable
    CreateTableAsSelect DeleteCommand DeleteFromTable DeleteFromTableWithFilters DeltaDelete
    DeltaDynamicPartitionOverwriteCommand DeltaInsertReplaceOnOrUsingCommand DeltaMergeInto
    DeltaUpdateTable InsertIntoDataSourceCommand InsertIntoHadoopFsRelationCommand InsertIntoHiveTable
    InsertIntoStatement MergeIntoCommand MergeIntoTable OverwriteByExpression OverwritePartitionsDynamic
    PlanWithUnresolvedIdentifier ReplaceData ReplaceTable ReplaceTableAsSelect UpdateCommand UpdateTable
    WriteDelta
    """
_UNRECORDED: Final[Mapping[str, str]] = {
    "AlterTableDropPartitionCommand": "DROP PARTITION",
    "Call": "CALL",
    "CloneTableCommand": "CLONE",
    "CloneTableStatement": "CLONE",
    "ConvertToDeltaCommand": "CONVERT TO DELTA by Spark",
    "CreateDeltaTableCommand": "CLONE",
    "DropPartitions": "DROP PARTITION",
    "InsertIntoDataSourceDirCommand": "INSERT OVERWRITE DIRECTORY",
    "InsertIntoDir": "INSERT OVERWRITE DIRECTORY",
    "InsertIntoHiveDirCommand": "INSERT OVERWRITE DIRECTORY",
    "LoadData": "LOAD DATA",
    "LoadDataCommand": "LOAD DATA",
    "RestoreTableCommand": "RESTORE",
    "RestoreTableStatement": "RESTORE",
    "TruncateDeltaTableCommand": "TRUNCATE",
    "TruncatePartition": "TRUNCATE",
    "TruncateTable": "TRUNCATE",
    "TruncateTableCommand": "TRUNCATE",
    "VacuumTableCommand": "VACUUM by Spark",
}
_DYNAMIC: Final[Mapping[str, str]] = {
    "CompoundBody": "A script (BEGIN ... END)",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
}
CALLED: Final[Mapping[str, str]] = {**_UNRECORDED, **_DYNAMIC}
"""Users' names of statements that take no operation id: they may change rows without being a governed write."""
_INTERNAL: Final = """
    ClusterByPlan CreateFlowCommand CreateMaterializedViewAsSelect CreateStreamingTable
    CreateStreamingTableAsSelect DeltaInvariantChecker DummyExpressionHolder ErrorCondition
    ExceptionHandler ExpressionLogicalPlanWrapper ExternalCommandExecutor ForStatement
    GeneralParameterizedQuery IfElseStatement IterateStatement LeaveStatement LogicalQueryStage
    LoopStatement MemoryPlan MergeRows NameParameterizedQuery OffsetHolder PosParameterizedQuery
    RepeatStatement ResolvedIdentifier ResolvedNamespace ResolvedNonPersistentFunc
    ResolvedPathBasedNonDeltaTable ResolvedPersistentFunc ResolvedPersistentView ResolvedProcedure
    ResolvedTable ResolvedTempView ReturnAnswer SaveAsV1TableCommand SaveIntoDataSourceCommand
    ScanBuilderHolder SearchedCaseStatement SimpleCaseStatement SingleStatement
    StreamingDataSourceV2Relation StreamingDataSourceV2ScanRelation StreamingExecutionRelation
    StreamingExplainCommand StreamingRelation StreamingRelationV2 DataSourceV2ScanRelation
    TemporaryViewRelation UnresolvedCatalogRelation UnresolvedCteRelationRef UnresolvedDataSource
    UnresolvedFunctionName UnresolvedIdentifier UnresolvedNamespace UnresolvedPathBasedDeltaTable
    UnresolvedPathBasedDeltaTableRelation UnresolvedPathBasedTable UnresolvedProcedure UnresolvedTable
    UnresolvedTableOrView UnresolvedView UpdateEventTimeWatermarkColumn V2TableReference OrderedJoin
    TimeTravel WhileStatement WriteFiles WriteIntoDelta WriteToContinuousDataSource WriteToDataSourceV2
    WriteToMicroBatchDataSource WriteToMicroBatchDataSourceV1 WriteToStream WriteToStreamStatement
    """
KINDS: Final[Mapping[str, StatementKind]] = {
    **dict.fromkeys(_INTERNAL.split(), StatementKind.INTERNAL),
    **dict.fromkeys((*QUERIES, *_OTHER_QUERIES.split()), StatementKind.QUERY),
    **dict.fromkeys(_SHOWS.split(), StatementKind.SHOWS),
    **dict.fromkeys(_DEFINES.split(), StatementKind.DEFINES),
    **dict.fromkeys(_WRITES.split(), StatementKind.WRITES),
    **dict.fromkeys(_UNRECORDED, StatementKind.UNRECORDED),
    **dict.fromkeys(_DYNAMIC, StatementKind.DYNAMIC),
}
"""By the simple name of the class."""


def kind_of(name: str) -> StatementKind:
    """What a statement of this class does."""
    return KINDS.get(name, StatementKind.UNKNOWN)
